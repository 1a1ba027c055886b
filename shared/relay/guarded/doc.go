// Package guarded holds what the guardrails of one request know and said: which hooks a
// target has, what came of them before it and behind its answer, and how that shows in
// statuses, bodies and the record. Which texts are judged, and how, is the room's of
// guardrails.
package guarded
