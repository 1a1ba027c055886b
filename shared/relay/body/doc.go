// Package body reads the body of an admitted request: JSON, a form, the query of a WebSocket, or
// the beginning of a streamed body, and its demands. Later stages read the result and do not
// change it.
//
// It fetches web addresses in requests, for hosts that accept only bytes
// (chat.Traits.NeedsMediaBytes), once per request regardless of the number of targets. A failed
// download is a 400 that names the part, before anything is sent to the provider.
//
// It computes the maximum usage of passed-through requests that are not priced by
// tokens: images, seconds of videos and of speech, characters and pages.
package body
