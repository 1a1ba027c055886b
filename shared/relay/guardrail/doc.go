// Package guardrail holds what the guardrails of one request know and decided: which hooks a target
// has, their results before it and after its response, and how those show in statuses, bodies and
// the record. Package guard defines which texts are judged, and how.
package guardrail
