package chosen

// Chooser makes a leaf of the plan into a target.
type Chooser struct {
	*Target
	*Wall
}

func newChooser(m *Means) *Chooser {
	t := &Target{Means: m}
	return &Chooser{t, &Wall{t}}
}
