// Package target makes one leaf of a plan into a target: where it is reached, with which
// credential, in which dialect, and what it is sent of the request. It rejects what the target may
// not be asked: models, addresses that the caller names for stored credentials, and ids of objects
// of other workspaces. Nothing is sent here.
package target
