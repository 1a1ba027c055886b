// Package mask replaces parts of texts by tokens such as {{EMAIL_ADDRESS_1}} and restores them
// in the model's response, even across the pieces of a stream. A value has the same token in
// all texts of a message, so that a model can distinguish people without identifying them.
package mask
