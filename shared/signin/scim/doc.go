// Package scim implements the protocol with which identity providers synchronize users and
// groups (RFC 7643 and 7644): schemas, filters, paths and PATCH, in the forms of the RFCs and
// in those that providers send. It works on resources as JSON objects, independent of storage.
package scim
