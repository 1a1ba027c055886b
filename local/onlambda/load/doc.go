// Package load drives the binary of the function chat in many environments at a time on one
// DynamoDB, through the edge and the API of onlambda. It reports whether limits were exact
// while the store throttled, whether a record was lost, how many environments had to start, and
// what a request costs.
package load
