// Package admitted is the first stage of the walk: a client's request whose caller
// is known, with the settings that it is served under and what its headers ask for.
// Later stages read it and do not change it.
package admitted
