// Package mask replaces parts of texts by tokens such as {{EMAIL_ADDRESS_1}}. Where a model
// used the tokens in its response, it puts the parts back, even across the pieces of a stream.
// A value has the same token in all texts of a message, so that a model can tell people apart
// without knowing who they are.
package mask
