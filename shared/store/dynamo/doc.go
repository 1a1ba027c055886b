// Package dynamo is the store on DynamoDB: one table for each store.TableName,
// with the keys pk and sk (strings), the attribute expires (epoch seconds, the
// table's TTL) and no index.
//
// Every write that can be refused asks for the row as it was
// (ReturnValuesOnConditionCheckFailure and ReturnValues ALL_OLD). DynamoDB
// returns a row before or after an update, not both; the row after is computed
// here from the row before by store.Update.Apply, whose rules are DynamoDB's own
// (storetest compares them).
//
// Refusals that are certain not to have happened are repeated: throttling and
// conflicts with a transaction. A lost answer is repeated only where doing the
// same again changes nothing; elsewhere it is store.ErrUncertain.
package dynamo
