// Package content extracts the texts that checks judge from requests and responses in every
// client format, and writes changed texts back. All other bytes stay unchanged.
package content
