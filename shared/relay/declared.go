package relay

import (
	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
)

// Behalf names the principal of a request that the gateway itself makes.
type Behalf = admission.Behalf

// Declarations of a family: see relay/routes.
type (
	Route  = routes.Route
	Caller = routes.Caller
	Get    = routes.Get
	Demand = routes.Demand
	Form   = routes.Form
	Prompt = routes.Prompt
	Retold = routes.Retold

	Composed    = routes.Composed
	Composition = routes.Composition
	Protocol    = routes.Protocol
	Calls       = routes.Calls
	DryRun      = routes.DryRun
	Secret      = routes.Secret
	Realtime    = routes.Realtime
	Live        = routes.Live
	Dialogue    = routes.Dialogue
	ModelList   = routes.ModelList
	Governed    = routes.Governed
)

// Shapes of routes, and the prefix of their paths.
const (
	Unified   = routes.Unified
	Raw       = routes.Raw
	Listing   = routes.Listing
	Resource  = routes.Resource
	Multipart = routes.Multipart
	Socket    = routes.Socket

	AnyPath        = routes.AnyPath
	BasePath       = routes.BasePath
	DefaultMaxBody = routes.DefaultMaxBody
)
