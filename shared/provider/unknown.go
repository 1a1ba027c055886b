package provider

import "gateway/shared/fault/hint"

// NotKnown is the message for an id that no provider of the catalogue has. It suggests the
// nearest one.
func NotKnown(id string) string {
	ids := make([]string, len(catalogue))
	for i := range catalogue {
		ids[i] = catalogue[i].ID
	}
	return "is not a provider of this gateway" + hint.DidYouMean(id, ids)
}
