// Package claude is what all hosts of Claude have in common, whatever their wire: what is
// rejected, how a model is made to answer in JSON, which cache markers are kept, and
// which reasoning a turn needs before the model may think.
package claude
