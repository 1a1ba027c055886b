// Package signin manages the sessions of signed-in users. A session is an opaque token that is
// stored as a hash. It has the user's current permissions. It ends on expiry, at the user's
// request, with the user, or by the organization's settings; then no process accepts it after
// two seconds.
//
// The sign-in methods are in the subpackages.
package signin
