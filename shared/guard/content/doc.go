// Package content finds the texts of a request or a response that checks judge, in each shape
// that clients use, and writes changed texts back into their places. All other bytes stay the
// same.
package content
