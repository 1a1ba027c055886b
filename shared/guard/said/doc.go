// Package said finds the texts of a request or an answer that checks judge, in each
// shape that clients speak, and writes changed ones back into their places. All other
// bytes stay as they are.
package said
