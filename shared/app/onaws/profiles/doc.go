// Package profiles configures AWS as its command line does: from the environment,
// profiles, single sign-on, roles of machines and web identities. A function
// needs none of that and does not link it; see onaws.Use.
package profiles
