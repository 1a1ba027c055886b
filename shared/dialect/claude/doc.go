// Package claude has the rules common to all hosts of Claude, regardless of their wire
// format: what is rejected, how a model is made to respond in JSON, which cache markers
// are retained, and which reasoning a turn needs before the model may think.
package claude
