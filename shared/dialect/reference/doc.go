// Package reference finds the names in request bodies that the body itself does not
// explain: models, addresses that a provider fetches, and objects that a provider stores
// under an id (files, responses, conversations, caches, containers and the like).
//
// Tenant isolation, allowed models and reservations share its one table (fields.go), so
// that none of them misses a field that another one knows. The table applies to all
// wire formats: a field has the same meaning wherever it occurs, and requests that are
// passed through do not specify which format they have. Keys are compared without case and
// underscores, because Google's servers accept both spellings of every field, and some
// servers ignore case.
package reference
