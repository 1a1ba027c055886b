// Package expect judges tables of tests of prompts: it validates their assertions, and reports
// whether they hold for a response. Patterns and schemas are those of guardrails, with their
// bounds.
//
// What must not be added: calls of models, and running of guardrails; the caller does both.
package expect
