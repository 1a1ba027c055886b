// Package sqstest is a strict SQS for tests: the JSON protocol over HTTP, with
// the limits and errors that AWS documents for standard queues, a redrive policy
// to a dead-letter queue, and faults on request.
//
// It rejects what a lenient emulator would accept: a wrong content type or target, an
// unsigned request, an unknown field, more than ten entries, ids that are not distinct,
// more than 1 MiB, characters that SQS does not carry.
package sqstest
