// Package notices tells the worker of notices who is to know: which webhooks an
// organisation and its workspaces have, and which people an event concerns.
package notices
