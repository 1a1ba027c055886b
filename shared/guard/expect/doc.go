// Package expect evaluates test tables of prompts: it validates their assertions and reports
// whether they hold for a response. It uses the patterns and schemas of guardrails with their
// limits.
//
// Do not add calls of models or guardrails here; the caller makes both.
package expect
