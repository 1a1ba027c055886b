// Package expect judges tables of tests of prompts: it validates their assertions, and
// tells whether they hold for an answer. Patterns and schemas are those of guardrails, with
// their bounds.
//
// What must never come in: calls of models, and running of guardrails; the caller does
// both.
package expect
