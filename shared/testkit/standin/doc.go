// Package standin emulates AWS on loopback: an emulator of DynamoDB in a separate process, and
// servers of SQS, S3 and KMS in this process that are as strict as the services. All data is in
// memory and lost at the end.
//
// Tables and queues are those of the stacks: a test of infra writes installation.json from the
// synthesized templates, and checks that it matches them.
package standin
