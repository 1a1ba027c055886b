// Package notices tells the worker of notices who must be told of an event: which webhooks
// an organisation and its workspaces have, and which people the event concerns.
package notices
