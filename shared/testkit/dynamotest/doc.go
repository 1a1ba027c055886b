// Package dynamotest runs a DynamoDB emulator for tests and opens stores on it.
package dynamotest
