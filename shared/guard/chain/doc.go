// Package chain runs guardrails: the hooks of a request's target, before the target is called
// and after its response. A hook's checks see the texts of their scope; their results become
// the hook's verdict, a denial, feedback, and changed bodies. The functions of checks know
// nothing of hooks, and the walk of the request knows nothing of checks.
package chain
