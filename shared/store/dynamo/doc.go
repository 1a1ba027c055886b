// Package dynamo is the store on DynamoDB: one table for each store.TableName,
// with the keys pk and sk (strings), the attribute expires (epoch seconds, the
// table's TTL) and no index.
//
// Every write that can be refused asks for the row as it was
// (ReturnValuesOnConditionCheckFailure and ReturnValues ALL_OLD). DynamoDB returns a row
// either before or after an update. So store.Update.Apply computes the row after the update
// from the row before, by the rules of DynamoDB (storetest compares them).
//
// Refused operations that were certainly not done are repeated: after throttling and after
// conflicts with a transaction. After a lost answer, an operation is only repeated if doing
// it twice changes nothing; otherwise the error is store.ErrUncertain.
package dynamo
