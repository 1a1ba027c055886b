package provider

import "gateway/shared/fault/hint"

// NotKnown is the message for an id that no provider of the catalogue has. It suggests the
// nearest one, or where to find them.
func NotKnown(id string) string {
	ids := make([]string, len(catalogue))
	for i := range catalogue {
		ids[i] = catalogue[i].ID
	}
	meant := hint.DidYouMean(id, ids)
	if meant == "" {
		meant = "; GET /v1/providers/catalog lists those that are"
	}
	return "is not a provider of this gateway" + meant
}
