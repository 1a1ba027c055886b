// Package standin stands in for AWS on loopback: an emulator of DynamoDB as a
// process of its own, and servers of SQS, S3 and KMS in this one that refuse what
// the services refuse. Everything is held in memory and gone at the end.
//
// Tables and queues are those of the stacks: installation.json is written from
// the synthesised templates by a test of infra, and kept equal to them by it.
package standin
