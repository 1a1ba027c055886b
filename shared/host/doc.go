// Package host adapts the gateway's http.Handlers and workers to what runs
// them: an HTTP/1.1 server, Lambda behind API Gateway REST (streamed and
// buffered), SQS batches and schedules. It knows nothing of what the handlers
// do.
package host
