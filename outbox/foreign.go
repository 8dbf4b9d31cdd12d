package outbox

// ForeignJobs counts River jobs of a kind that this build has no worker for.
type ForeignJobs struct {
	Kind  string `json:"kind"`
	State string `json:"state"`
	Count int64  `json:"count"`
}
