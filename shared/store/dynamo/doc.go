// Package dynamo is the store on DynamoDB: one table for each store.TableName, with the
// keys pk and sk (strings), the attribute expires (epoch seconds, the table's TTL) and no
// index.
//
// Every conditional write requests the previous row (ReturnValuesOnConditionCheckFailure
// and ReturnValues ALL_OLD). DynamoDB returns a row either before or after an update. So
// store.Update.Apply computes the row after the update from the row before, by the rules
// of DynamoDB (storetest compares them).
//
// Rejected operations without an effect are repeated: after throttling and after
// conflicts with a transaction. After a lost response, an operation is only repeated if
// it is idempotent; otherwise the error is store.ErrUncertain.
package dynamo
