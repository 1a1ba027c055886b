// Package expect judges tables of tests of prompts: it validates their assertions, and
// tells whether they are true of an answer. Patterns and schemas are those of
// guardrails, with their bounds.
//
// What must never come in: calls of models, and running of guardrails, which the caller
// does.
package expect
