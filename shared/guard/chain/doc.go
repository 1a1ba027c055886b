// Package chain runs guardrails: the hooks of a request's target before it is asked and
// behind its answer. A hook's checks are shown the texts of their scope; what they say
// becomes the hook's verdict, a denial, feedback, and changed bodies. The functions of
// checks know nothing of hooks, and the walk of the request nothing of checks.
package chain
