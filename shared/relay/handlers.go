package relay

import "gateway/shared/relay/routes"

// pipeline serves one request for the handler of its route. It implements routes.Pipeline.
type pipeline struct{ c *call }

// Model implements routes.Pipeline.
func (p pipeline) Model() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	if p.c.plan.Mine {
		return manage(p.c)
	}
	return relay(p.c)
}

// List implements routes.Pipeline.
func (p pipeline) List(of *routes.ModelList) error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return list(p.c, of.List)
}

// Render implements routes.Pipeline.
func (p pipeline) Render() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return rendered(p.c)
}

// Compose implements routes.Pipeline.
func (p pipeline) Compose(of *routes.Composed) error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return composed(p.c, of)
}

// Mint implements routes.Pipeline.
func (p pipeline) Mint() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return mint(p.c)
}

// Rehearse implements routes.Pipeline.
func (p pipeline) Rehearse(of *routes.DryRun) error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return rehearse(p.c, of)
}

// Call implements routes.Pipeline. There is no plan, and the protocol itself counts its calls.
func (p pipeline) Call(protocol routes.Protocol) error { return governed(p.c, protocol) }

// RunTools implements routes.Pipeline. Each call of the model is a separate request, which is
// planned and counted.
func (p pipeline) RunTools(of *routes.ToolRun) error {
	if wantsTools(&p.c.req, &p.c.body, of) {
		return runTools(p.c, of)
	}
	return p.Model()
}

// OpenSession implements routes.Pipeline.
func (p pipeline) OpenSession() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return openSession(p.c)
}

// AwaitOpening implements routes.Pipeline. Only the opened session is counted.
func (p pipeline) AwaitOpening(*routes.Live) error {
	if err := planned(p.c, false); err != nil {
		return err
	}
	return p.c.relay.Sessions.await(p.c)
}

// Converse implements routes.Pipeline. Only the messages are counted.
func (p pipeline) Converse(turns *routes.Dialogue) error {
	if err := planned(p.c, false); err != nil {
		return err
	}
	return p.c.relay.Sessions.converse(p.c, turns)
}
