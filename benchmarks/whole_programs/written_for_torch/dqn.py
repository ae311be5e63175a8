"""DQN on a pole that must be balanced: 3,000 steps of a NumPy environment, each with one action and one training step on 64 transitions."""
import numpy as np
import torch
from torch import nn

STEPS = 3000


def move(state, action):
    """Return the next state of the pole and whether it fell."""
    position, speed, angle, turn = state
    force = 10.0 if action else -10.0
    pull = (force + 0.05 * turn ** 2 * np.sin(angle)) / 1.1
    swing = (9.8 * np.sin(angle) - np.cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    push = pull - 0.05 * swing * np.cos(angle) / 1.1
    state = np.float32([position + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * swing])
    return state, abs(state[0]) > 2.4 or abs(state[2]) > 0.2


def build_policy():
    return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))


torch.manual_seed(1)
policy, target = build_policy(), build_policy()
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)


def train_step(states, actions, rewards, following, running):
    with torch.no_grad():
        goals = rewards + 0.99 * running * target(following).amax(1, keepdim=True)
    loss = nn.functional.smooth_l1_loss(policy(states).gather(1, actions.long()), goals)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


rows = np.random.default_rng(0)
columns = ((4, np.float32), (1, np.int32), (1, np.float32), (4, np.float32), (1, np.float32))
memory = [np.zeros((STEPS, width), dtype) for width, dtype in columns]
state = rows.uniform(-0.05, 0.05, 4).astype(np.float32)
for step in range(STEPS):
    if rows.random() < max(0.05, 1 - step / 1000):
        action = int(rows.integers(2))
    else:
        with torch.no_grad():
            action = int(policy(torch.from_numpy(state[None])).argmax())
    following, has_fallen = move(state, action)
    for column, value in zip(memory, (state, action, 1.0, following, 0.0 if has_fallen else 1.0)):
        column[step] = value
    state = rows.uniform(-0.05, 0.05, 4).astype(np.float32) if has_fallen else following
    if step >= 64:
        chosen = rows.integers(0, step, 64)
        loss = train_step(*(torch.from_numpy(column[chosen]) for column in memory))
    if step % 200 == 0:
        target.load_state_dict(policy.state_dict())
    if step % 1000 == 999:
        print("loss", loss.item())
