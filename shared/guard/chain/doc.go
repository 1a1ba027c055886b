// Package chain runs guardrails: the hooks of a target, before the target is called and after
// its response. The results of a hook's checks become the hook's verdict, a denial, feedback,
// and changed bodies. Checks do not depend on hooks, and the request pipeline does not depend
// on checks.
package chain
