package perception

// grid is the occupancy index behind Clearance.
type grid struct{}
