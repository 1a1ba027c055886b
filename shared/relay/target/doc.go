// Package target resolves one leaf of a plan to a target: its address, credential and dialect,
// and the body that it gets. It rejects models that may not be used, addresses that the caller
// names for stored credentials, and ids of objects of other workspaces. Nothing is sent here.
package target
