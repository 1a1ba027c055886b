// Package target resolves one leaf of a plan to a target: its address, credential and dialect,
// and the body that it gets. It rejects models that may not be used, addresses that the caller
// names for stored credentials, and ids of objects of other workspaces. Nothing is sent here.
//
// A SecretMask redacts a target's credentials from responses, errors and logs: providers repeat
// them in errors, and the log shows requests. They are found by value and overwritten by
// asterisks of the same length.
package target
