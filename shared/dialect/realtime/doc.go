// Package realtime reads the events of realtime sessions in OpenAI's format, of its
// general and its beta version: the parts relevant for billing and for guardrails.
// Everything else is forwarded unchanged.
package realtime
