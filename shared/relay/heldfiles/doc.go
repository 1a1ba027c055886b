// Package heldfiles stores objects for workspaces that their providers cannot store: files, and
// notes on jobs. It also stores the files of batches that the gateway runs itself.
package heldfiles
