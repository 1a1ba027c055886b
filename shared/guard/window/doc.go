// Package window judges a stream between the reader of the provider's events and the writer of
// the client's. A window forwards a text after it was judged together with the following text.
// A hold forwards nothing before the entire response was judged.
package window
