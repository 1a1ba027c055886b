// Package bidi reads the Live sessions of Gemini: turns, each with the usage that is told
// of it. A turn that calls tools may be told in several parts, each of which reads the
// conversation again.
//
// What is told of a turn once more, or grown, takes the place of what was told of it
// before: the prompt is the same. Of turns one behind the other each is charged, since each
// reads all that was said before it. Usage comes beside other content or alone, also once
// its turn is over.
package bidi
