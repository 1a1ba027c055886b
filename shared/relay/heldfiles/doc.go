// Package heldfiles keeps for workspaces what their providers have no place for:
// files, and notes on jobs. It also keeps the files of batches that the gateway
// runs itself.
package heldfiles
