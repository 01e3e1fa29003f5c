"""The floor: few workers pick and pack what is allocated, and stock is refilled when it runs low."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skyfall_morpheus.local.model import PRIORITIES
from skyfall_morpheus.local.streams import stream

if TYPE_CHECKING:
    from skyfall_morpheus.local.model import Order
    from skyfall_morpheus.local.simulation import Simulation

__all__ = ["dispatch", "on_packed", "on_picked", "on_restock", "release", "reorder"]


def dispatch(world: Simulation) -> None:
    """Put free workers on allocated orders: highest priority first, then the oldest."""
    while world.busy < world.workers and (waiting := world.orders.by_status.get("ALLOCATED")):
        order = min(waiting.values(), key=lambda one: (-PRIORITIES[one.priority], one.number))
        world.busy += 1
        world.move(world.orders, order, "PICKING")
        world.schedule(0.6 * _work(world, order), "picked", order.number)


def release(world: Simulation, order: Order) -> None:
    """Give a not yet shipped order's stock back, and its worker's time."""
    world.stock[order.product] += order.allocated
    order.allocated = 0
    if order.status in {"PICKING", "PICKED"}:
        world.busy -= 1
        dispatch(world)


def reorder(world: Simulation, product: int) -> None:
    """Have a product that runs low refilled, once at a time."""
    if world.stock[product] <= world.rules.restock_at and product not in world.restocking:
        world.restocking.add(product)
        world.schedule(world.rules.restock_minutes, "restock", product)


def _work(world: Simulation, order: Order) -> float:
    shortest, longest = world.rules.work_minutes
    return shortest + (longest - shortest) * stream(world.seed, "work", order.number).random()


def on_picked(world: Simulation, number: int) -> None:
    """A worker has picked an order and goes on to pack it."""
    order = world.orders.get(number)
    if order is not None and order.status == "PICKING":
        world.move(world.orders, order, "PICKED")
        world.schedule(0.4 * _work(world, order), "packed", number)


def on_packed(world: Simulation, number: int) -> None:
    """An order is packed, and its worker is free."""
    order = world.orders.get(number)
    if order is not None and order.status == "PICKED":
        world.move(world.orders, order, "PACKED")
        world.busy -= 1
        dispatch(world)


def on_restock(world: Simulation, product: int) -> None:
    """A refill comes in."""
    world.restocking.discard(product)
    world.stock[product] += world.rules.stock
