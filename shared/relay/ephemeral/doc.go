// Package ephemeral makes and opens the client secrets of realtime sessions: short-lived
// credentials of the gateway's own that a browser may hold. One opens sessions as the API
// key does that it was made with, with that request's headers and for its model alone, and
// is worth nothing once that key is not.
//
// What a secret stands for is kept sealed under its hash; any process can open it.
package ephemeral
