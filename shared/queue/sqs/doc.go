// Package sqs is a queue on SQS, standard queues, JSON protocol.
//
// A dead-letter queue is an ordinary queue. The installation sets it by a redrive policy; here
// it is opened by its URL like any other. Times are in seconds, rounded up. Bodies that are not
// text are base64 with a mark (see queue.EncodeBody). A Lambda function that gets messages from
// an event source decodes them with queue.DecodeBody.
//
// The role needs sqs:SendMessage, sqs:ReceiveMessage, sqs:DeleteMessage and
// sqs:ChangeMessageVisibility on the queue.
package sqs
