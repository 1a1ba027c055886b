// Package standin stands in for AWS on loopback: an emulator of DynamoDB in its own
// process, and servers of SQS, S3 and KMS in this process that refuse what the services
// refuse. Everything is kept in memory and is gone at the end.
//
// Tables and queues are those of the stacks: a test of infra writes installation.json from
// the synthesised templates, and checks that it stays equal to them.
package standin
