// Package host adapts the gateway's http.Handlers and workers to their platforms: an
// HTTP/1.1 server, Lambda behind API Gateway REST (streamed and buffered), SQS batches
// and schedules. It must not depend on what the handlers do.
package host
