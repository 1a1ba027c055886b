package usage

// MeasuredShown is a choice by figures as the API shows it.
type MeasuredShown struct {
	Path     string        `json:"path"`
	Strategy string        `json:"strategy" enum:"latency,cost,least_busy"`
	Chosen   int           `json:"chosen"`
	Reason   string        `json:"reason" enum:"lowest,tie,explore,too_few_observed,no_figures,all_failing,sticky,as_recorded"`
	Figures  []FigureShown `json:"figures" doc:"Figures of up to 10 targets."`
}

// FigureShown is what a choice knew of one target.
type FigureShown struct {
	Index    int      `json:"index"`
	Value    *float64 `json:"value" doc:"The compared figure; null: unknown."`
	Unit     string   `json:"unit" enum:"ms,cents,requests"`
	Observed int      `json:"observations" doc:"Latencies of requests of this size."`
	InFlight int      `json:"in_flight"`
	Avoided  bool     `json:"avoided" doc:"It was avoided because it had failed recently."`
}

// ShowMeasured shows choices by figures.
func ShowMeasured(list []Measured) []MeasuredShown {
	out := make([]MeasuredShown, len(list))
	for i := range list {
		m := &list[i]
		out[i] = MeasuredShown{Path: m.Path, Strategy: m.By, Chosen: m.Chosen, Reason: m.Reason, Figures: make([]FigureShown, len(m.Figures))}
		for j := range m.Figures {
			out[i].Figures[j] = m.Figures[j].Show(m.By)
		}
	}
	return out
}

// Show shows one figure of what a strategy compares.
func (f Figure) Show(by string) FigureShown {
	out := FigureShown{Index: f.Index, Unit: "requests", Observed: f.Observed, InFlight: f.InFlight, Avoided: f.Avoided}
	scale := 1.0
	switch by {
	case ByLatency:
		out.Unit, scale = "ms", 1e6
	case ByCost:
		out.Unit, scale = "cents", 1e7
	}
	if f.Value >= 0 {
		v := float64(f.Value) / scale
		out.Value = &v
	}
	return out
}
