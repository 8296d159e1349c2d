"""For tests of programs that use Headrace, public: stand-ins for disk, network and clock, seeded and repeatable."""
