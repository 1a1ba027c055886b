// Package chosen is the fourth stage of the walk: one target of a plan made ready,
// which is where it is reached, with which credential, in which shape, and what of
// the request it is told. It refuses what the target may not be asked: models,
// addresses that the caller names for what is saved, and ids of other workspaces'
// things. Nothing is sent here.
package chosen
